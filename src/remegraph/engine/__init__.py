"""Writing and reading memory: the LangGraph graphs of summariser and retriever, and the writers of single records."""
