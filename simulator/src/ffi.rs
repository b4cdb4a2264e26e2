//! Arguments as C passes them.
//!
//! Each wrapper below is `repr(transparent)` over the C type, so that exported functions can name
//! it in their signature, and carries the only code that dereferences it. The contract is the one
//! of `nvml.h`: a pointer is NULL, or it points at storage of the documented type (and, for arrays
//! and strings, of the documented length) that nobody else touches during the call.

use std::ffi::{CStr, c_char};
use std::fmt::Write as _;

use crate::code::{ARGUMENT_VERSION_MISMATCH, Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT};

/// An opaque NVML object (`nvmlDevice_t`, `nvmlEventSet_t`, ...): a number in pointer's clothing.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    /// The handle as the pointer type that the structs of the binding hold.
    pub(crate) fn pointer<T>(self) -> *mut T {
        std::ptr::without_provenance_mut(self.0)
    }
}

/// Something a function was called with: what the trace shows of it, and whether it is missing.
pub(crate) trait Argument {
    /// Whether the argument is a NULL pointer where one may not be.
    fn missing(&self) -> bool {
        false
    }
    /// Appends the argument to a trace line; out-parameters say nothing.
    fn show(&self, _line: &mut String) {}
}

macro_rules! plain_arguments {
    ($($ty:ty),*) => {$(
        impl Argument for $ty {
            fn show(&self, line: &mut String) {
                let _ = write!(line, " {self}");
            }
        }
    )*};
}
plain_arguments!(u32, i32, u64, i64);

impl Argument for Handle {
    fn show(&self, line: &mut String) {
        let _ = write!(line, " {:#x}", self.0);
    }
}

/// A pointer to one value that the function fills (or reads and fills).
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Argument for Out<T> {
    fn missing(&self) -> bool {
        self.0.is_null()
    }
}

impl<T: Copy> Out<T> {
    /// Stores a value; `INVALID_ARGUMENT` for NULL.
    pub(crate) fn put(self, value: T) -> Answer {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, hence storage for a `T` by the contract above; `write_unaligned` since
        // clients written in scripting languages do not always align their buffers.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Reads what the caller put there.
    pub(crate) fn get(self) -> Answer<T> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, hence an initialised `T` by the contract above.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl<T> Out<T> {
    /// The version word, which is the first field of every versioned struct.
    pub(crate) fn version(self) -> Answer<u32> {
        Out::<u32>(self.0.cast()).get()
    }

    /// Checks the version word: `sizeof(struct) | version << 24`, as `NVML_STRUCT_VERSION` has it.
    pub(crate) fn expect_version(self, version: u32) -> Answer {
        if self.version()? == struct_version::<T>(version) {
            Ok(())
        } else {
            Err(ARGUMENT_VERSION_MISMATCH)
        }
    }

    /// The array that begins right behind the value, where a struct ends in one.
    pub(crate) fn tail<U>(self) -> Array<U> {
        Array(self.0.wrapping_add(1).cast())
    }

    /// The same pointer as another version of the struct.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

/// `NVML_STRUCT_VERSION` for a struct of the binding.
pub(crate) fn struct_version<T>(version: u32) -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(0) | version << 24
}

/// A character buffer whose length comes in another argument.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*mut c_char);

impl Argument for Text {
    fn missing(&self) -> bool {
        self.0.is_null()
    }
}

impl Text {
    /// Stores a string with its final NUL; `INSUFFICIENT_SIZE` if it does not fit.
    pub(crate) fn put(self, length: u32, value: &str) -> Answer {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        if value.len() >= length as usize {
            return Err(INSUFFICIENT_SIZE);
        }
        // SAFETY: not NULL, hence `length` bytes by the contract above, and the string with its NUL
        // is no longer than that.
        unsafe {
            self.0.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len());
            self.0.add(value.len()).write(0);
        }
        Ok(())
    }
}

/// A NUL-terminated string that the caller passes in.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct In(*const c_char);

impl Argument for In {
    fn missing(&self) -> bool {
        self.0.is_null()
    }
    fn show(&self, line: &mut String) {
        let _ = write!(line, " {}", self.get().unwrap_or("NULL"));
    }
}

impl In {
    /// The string; `INVALID_ARGUMENT` for NULL and for bytes that are not UTF-8.
    pub(crate) fn get<'a>(self) -> Answer<&'a str> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, hence NUL-terminated by the contract above. The lifetime ends with the
        // call: callers of `get` copy what they keep.
        unsafe { CStr::from_ptr(self.0) }.to_str().map_err(|_| INVALID_ARGUMENT)
    }
}

/// An array whose length comes in another argument. NULL is allowed where the length is 0.
#[repr(transparent)]
pub(crate) struct Array<T>(*mut T);

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T> Argument for Array<T> {}

impl<T: Copy> Array<T> {
    /// The protocol of most NVML lists: the caller says how many fit, the library says how many
    /// there are, with `INSUFFICIENT_SIZE` and nothing stored if they do not fit.
    pub(crate) fn put_list(self, count: Out<u32>, values: &[T]) -> Answer {
        let room = count.get()? as usize;
        count.put(u32::try_from(values.len()).unwrap_or(u32::MAX))?;
        if values.len() > room {
            return Err(INSUFFICIENT_SIZE);
        }
        self.put_some(values)
    }

    /// Stores values of which the caller is known to have room for.
    pub(crate) fn put_some(self, values: &[T]) -> Answer {
        if values.is_empty() {
            return Ok(());
        }
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        for (i, value) in values.iter().enumerate() {
            // SAFETY: not NULL and `i` is below the length that the caller gave, by the contract
            // above and by the callers of this function.
            unsafe { self.0.add(i).write_unaligned(*value) };
        }
        Ok(())
    }

    /// Reads element `i`, which the caller said exists.
    pub(crate) fn at(self, i: usize) -> Answer<T> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: as in `put_some`.
        Ok(unsafe { self.0.add(i).read_unaligned() })
    }

    /// Stores element `i`, which the caller said exists.
    pub(crate) fn set(self, i: usize, value: T) -> Answer {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: as in `put_some`.
        unsafe { self.0.add(i).write_unaligned(value) };
        Ok(())
    }

    /// An array that lies inside a struct the caller passed.
    pub(crate) fn from_field(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// The same array as one of another type.
    pub(crate) fn cast<U>(self) -> Array<U> {
        Array(self.0.cast())
    }

    /// Whether there is no array at all.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// Copies a string into a fixed character field, cut to fit and always terminated.
pub(crate) fn chars<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (slot, byte) in field.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
        *slot = c_char::from_ne_bytes([byte]);
    }
    field
}
