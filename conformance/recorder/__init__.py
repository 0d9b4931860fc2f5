"""Records traces of real Apache Kafka clusters: brokers, consumers and Connect workers on loopback.

``scenarios`` says what happens, one function each; ``config`` says with which settings (pure); ``processes`` starts and stops
programs; ``proxy`` disturbs the connections of a client; ``stage`` plays one scenario; ``collect`` packs what it left behind.
"""
