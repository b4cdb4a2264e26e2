//! A libnvidia-ml look-alike.
