//! What handles stand for.

use crate::ffi::Handle;

/// What kind of object a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Device = 0xd1,
    Mig = 0xd2,
    GpuInstance = 0xd3,
    ComputeInstance = 0xd4,
}

/// What a handle stands for. Handles are numbers that spell this out, so that stale and invented
/// ones are found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) generation: u16,
    pub(crate) gpu: usize,
    pub(crate) gi: u32,
    pub(crate) ci: u32,
}

impl Target {
    /// Packs the target into a handle.
    pub(crate) fn to_handle(self) -> Handle {
        let Self { kind, generation, gpu, gi, ci } = self;
        Handle(
            (kind as usize) << 40
                | usize::from(generation) << 24
                | (gpu & 0xff) << 16
                | (gi as usize & 0xff) << 8
                | ci as usize & 0xff,
        )
    }

    /// Unpacks a handle.
    pub(crate) fn from_handle(Handle(bits): Handle) -> Option<Self> {
        let kind = match bits >> 40 {
            0xd1 => Kind::Device,
            0xd2 => Kind::Mig,
            0xd3 => Kind::GpuInstance,
            0xd4 => Kind::ComputeInstance,
            _ => return None,
        };
        let byte = |shift: u32| bits >> shift & 0xff;
        Some(Self {
            kind,
            generation: u16::try_from(bits >> 24 & 0xffff).unwrap_or(0),
            gpu: byte(16),
            gi: u32::try_from(byte(8)).unwrap_or(0),
            ci: u32::try_from(byte(0)).unwrap_or(0),
        })
    }
}
