"""remegraph: the memory layer for LangGraph and LangChain agents."""
