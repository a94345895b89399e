"""Messages of the control plane, one module per family; each struct is its own table."""
