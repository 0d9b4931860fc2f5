# Everything below sets up its own environment in .venv; nothing needs to be installed by hand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test lint bench record zoo matrix lock clean

demo: $(STAMP)           ## validate the bundled traces of real Kafka clusters, write a report and draw them; two of them show defects of Kafka (exit 1)
	@$(BIN)/kipcheck validate traces/kafka-* --report html=report.html --report markdown=report.md || [ $$? -eq 1 ]
	@$(BIN)/kipcheck show traces/kafka-* -o page.html

test: $(STAMP)           ## all tests; those that need more than Python say so when they are skipped
	$(BIN)/python -m pytest -n auto -q

lint: $(STAMP)           ## ruff, strict types, and the import contract on an installed (non-editable) copy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	rm -rf build/lint && $(BIN)/python -m pip install -q --no-deps --no-build-isolation --target build/lint .
	PYTHONPATH=build/lint $(BIN)/lint-imports

bench: $(STAMP)          ## ratios, measured in one run
	$(BIN)/python tests/benchmarks/bench_scan.py
	$(BIN)/python tests/benchmarks/bench_states.py
	$(BIN)/python tests/benchmarks/bench_gate.py
	$(BIN)/python -m tests.benchmarks.bench_page
	$(BIN)/python tests/benchmarks/bench_spark.py

record: $(STAMP)         ## record traces/ anew from real clusters (needs mvn and a JDK)
	$(BIN)/python -m kipcheck.conformance.recorder --out traces

zoo: $(STAMP)            ## run the gate over the releases that had historic defects; writes tests/kafka/ZOO.md (needs mvn)
	$(BIN)/python -m tests.kafka.zoo

matrix: $(STAMP)         ## run the gate over current client libraries; writes tests/peers/MATRIX.md (needs mvn, go and npm)
	$(BIN)/python -m tests.peers.matrix

lock:                    ## refresh the locked versions
	$(BIN)/python -m pip install -q uv && $(BIN)/uv pip compile -q --universal --python-version 3.11 --no-header --extra spark --extra gate --extra jvm --extra prove --extra test --extra bench --extra lint pyproject.toml -o requirements.lock

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kipcheck needs Python 3.11 or later; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
