//! Clock frequencies, current, maximal and requested.

use super::prelude::*;

const SM: Call = Call::ClockInfo(Clock::Sm);
const MEMORY: Call = Call::ClockInfo(Clock::Memory);
const VIDEO: Call = Call::ClockInfo(Clock::Video);
const GRAPHICS: Call = Call::ClockInfo(Clock::Graphics);
const MAX_SM: Call = Call::MaxClockInfo(Clock::Sm);
const MAX_MEMORY: Call = Call::MaxClockInfo(Clock::Memory);
const MAX_VIDEO: Call = Call::MaxClockInfo(Clock::Video);
const MAX_GRAPHICS: Call = Call::MaxClockInfo(Clock::Graphics);
/// DCGM asks for the graphics clock here too: NVML has no application clock for the SMs.
const APP_SM: Call = Call::ApplicationsClock(Clock::Graphics);
const APP_MEMORY: Call = Call::ApplicationsClock(Clock::Memory);

/// NVML gives MHz.
#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    gauge("DCGM_FI_DEV_SM_CLOCK", 100, Gpu, plain(SM))
        .doc("MHz", "Frequency at which the streaming multiprocessors run now, in MHz.")
        .alias(&["dcgm_sm_clock"]).renamed("DCGM_FI_DEV_SM_CLOCK_HERTZ").on(),
    gauge("DCGM_FI_DEV_MEM_CLOCK", 101, Gpu, plain(MEMORY))
        .doc("MHz", "Frequency at which the device memory runs now, in MHz.")
        .alias(&["dcgm_memory_clock"]).renamed("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ").on(),
    gauge("DCGM_FI_DEV_VIDEO_CLOCK", 102, Gpu, plain(VIDEO))
        .doc("MHz", "Frequency at which the video encoder and decoder run now, in MHz.")
        .renamed("DCGM_FI_DEV_VIDEO_CLOCK_HERTZ"),
    gauge("DCGM_FI_DEV_APP_SM_CLOCK", 110, Gpu, plain(APP_SM))
        .doc("MHz", "Graphics clock that applications are to run at, in MHz.")
        .renamed("DCGM_FI_DEV_SM_APP_CLOCK_HERTZ"),
    gauge("DCGM_FI_DEV_APP_MEM_CLOCK", 111, Gpu, plain(APP_MEMORY))
        .doc("MHz", "Memory clock that applications are to run at, in MHz.")
        .renamed("DCGM_FI_DEV_MEMORY_APP_CLOCK_HERTZ"),
    gauge("DCGM_FI_DEV_MAX_SM_CLOCK", 113, Gpu, plain(MAX_SM))
        .doc("MHz", "Highest frequency of the streaming multiprocessors, in MHz.")
        .renamed("DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ").on(),
    gauge("DCGM_FI_DEV_MAX_MEM_CLOCK", 114, Gpu, plain(MAX_MEMORY))
        .doc("MHz", "Highest frequency of the device memory, in MHz.")
        .renamed("DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ"),
    gauge("DCGM_FI_DEV_MAX_VIDEO_CLOCK", 115, Gpu, plain(MAX_VIDEO))
        .doc("MHz", "Highest frequency of the video encoder and decoder, in MHz.")
        .renamed("DCGM_FI_DEV_VIDEO_MAX_CLOCK_HERTZ"),
    gauge("DCGM_FI_DEV_AUTOBOOST", 120, Gpu, plain(Call::AutoBoostedClocks))
        .doc("0/1", "Whether the GPU may raise its clocks by itself (1) or not (0).")
        .renamed("DCGM_FI_DEV_CLOCKS_AUTOBOOST_MODE"),

    gauge("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1603, Gpu, call(SM, pick::hertz))
        .doc("Hz", "Frequency at which the streaming multiprocessors run now, in hertz."),
    gauge("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", 1604, Gpu, call(MEMORY, pick::hertz))
        .doc("Hz", "Frequency at which the device memory runs now, in hertz."),
    gauge("DCGM_FI_DEV_VIDEO_CLOCK_HERTZ", 1605, Gpu, call(VIDEO, pick::hertz))
        .doc("Hz", "Frequency at which the video encoder and decoder run now, in hertz."),
    gauge("DCGM_FI_DEV_SM_APP_CLOCK_HERTZ", 1606, Gpu, call(APP_SM, pick::hertz))
        .doc("Hz", "Graphics clock that applications are to run at, in hertz."),
    gauge("DCGM_FI_DEV_MEMORY_APP_CLOCK_HERTZ", 1607, Gpu, call(APP_MEMORY, pick::hertz))
        .doc("Hz", "Memory clock that applications are to run at, in hertz."),
    gauge("DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ", 1608, Gpu, call(MAX_SM, pick::hertz))
        .doc("Hz", "Highest frequency of the streaming multiprocessors, in hertz."),
    gauge("DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ", 1609, Gpu, call(MAX_MEMORY, pick::hertz))
        .doc("Hz", "Highest frequency of the device memory, in hertz."),
    gauge("DCGM_FI_DEV_VIDEO_MAX_CLOCK_HERTZ", 1610, Gpu, call(MAX_VIDEO, pick::hertz))
        .doc("Hz", "Highest frequency of the video encoder and decoder, in hertz."),

    gauge("nvml_graphics_clock_hertz", 0, Gpu, call(GRAPHICS, pick::hertz))
        .doc("Hz", "Frequency at which the graphics engine runs now, in hertz."),
    gauge("nvml_graphics_clock_max_hertz", 0, Gpu, call(MAX_GRAPHICS, pick::hertz))
        .doc("Hz", "Highest frequency of the graphics engine, in hertz."),
];
