//! Values: the vocabulary of the store. No I/O, no clock, no SQL.
