"""x"""
def contradicts(a,b): return False
def read_claims(*a): return ()
