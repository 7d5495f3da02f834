"""How a recall is answered: the retriever's graph, its hits, and what comes along with them."""
