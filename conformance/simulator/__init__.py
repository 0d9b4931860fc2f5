"""The simulator: the reference model behind a page on which one starts, stops and disturbs members, step by step."""
