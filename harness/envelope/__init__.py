"""The envelope of a run: read from recorded traffic (`traffic`), taken from the machine (`machine`), put together (`capture`)."""
