"""What writes and reads memory: the LangGraph graphs of summariser and retriever, and the writers of single things."""
