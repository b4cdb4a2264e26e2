//! Framebuffer and BAR1: how much there is and how much is used.

use super::prelude::*;

const FB: Call = Call::MemoryInfo;
const BAR1: Call = Call::Bar1MemoryInfo;

/// Each number is cut to MiB on its own, so that total need not equal the sum of the parts.
#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    gauge("DCGM_FI_DEV_FB_TOTAL", 250, Instance, call(FB, |n| pick::mib(n, slot::TOTAL)))
        .doc("MiB", "Size of the framebuffer, in MiB.")
        .renamed("DCGM_FI_DEV_FB_CAPACITY_BYTES").on(),
    gauge("DCGM_FI_DEV_FB_FREE", 251, Instance, call(FB, |n| pick::mib(n, slot::FREE)))
        .doc("MiB", "Framebuffer that is free, in MiB.")
        .alias(&["dcgm_fb_free"]).renamed("DCGM_FI_DEV_FB_FREE_BYTES").on(),
    gauge("DCGM_FI_DEV_FB_USED", 252, Instance, call(FB, |n| pick::mib(n, slot::USED)))
        .doc("MiB", "Framebuffer that is in use, in MiB.")
        .alias(&["dcgm_fb_used"]).renamed("DCGM_FI_DEV_FB_USED_BYTES").on(),
    gauge("DCGM_FI_DEV_FB_RESERVED", 253, Instance, call(FB, |n| pick::mib(n, slot::RESERVED)))
        .doc("MiB", "Framebuffer that driver and firmware keep for themselves, in MiB.")
        .renamed("DCGM_FI_DEV_FB_RESERVED_BYTES").on(),
    gauge("DCGM_FI_DEV_FB_USED_PERCENT", 254, Instance, call(FB, pick::used_share))
        .doc("ratio", "Share of the usable framebuffer that is in use, as a ratio from 0 to 1 despite its name.")
        .renamed("DCGM_FI_DEV_FB_USED_RATIO"),
    gauge("DCGM_FI_DEV_FB_CAPACITY_BYTES", 1625, Instance, call(FB, |n| pick::raw(n, slot::TOTAL)))
        .doc("bytes", "Size of the framebuffer, in bytes."),
    gauge("DCGM_FI_DEV_FB_FREE_BYTES", 1626, Instance, call(FB, |n| pick::raw(n, slot::FREE)))
        .doc("bytes", "Framebuffer that is free, in bytes."),
    gauge("DCGM_FI_DEV_FB_USED_BYTES", 1627, Instance, call(FB, |n| pick::raw(n, slot::USED)))
        .doc("bytes", "Framebuffer that is in use, in bytes."),
    gauge("DCGM_FI_DEV_FB_RESERVED_BYTES", 1628, Instance, call(FB, |n| pick::raw(n, slot::RESERVED)))
        .doc("bytes", "Framebuffer that driver and firmware keep for themselves, in bytes."),

    gauge("DCGM_FI_DEV_BAR1_TOTAL", 90, Instance, call(BAR1, |n| pick::mib(n, slot::TOTAL)))
        .doc("MiB", "Size of the BAR1 aperture, in MiB.")
        .renamed("DCGM_FI_DEV_BAR1_CAPACITY_BYTES"),
    gauge("DCGM_FI_DEV_BAR1_USED", 92, Instance, call(BAR1, |n| pick::mib(n, slot::USED)))
        .doc("MiB", "BAR1 aperture that is mapped, in MiB.")
        .renamed("DCGM_FI_DEV_BAR1_USED_BYTES"),
    gauge("DCGM_FI_DEV_BAR1_FREE", 93, Instance, call(BAR1, |n| pick::mib(n, slot::FREE)))
        .doc("MiB", "BAR1 aperture that is free, in MiB.")
        .renamed("DCGM_FI_DEV_BAR1_FREE_BYTES"),
    gauge("DCGM_FI_DEV_BAR1_CAPACITY_BYTES", 1600, Instance, call(BAR1, |n| pick::raw(n, slot::TOTAL)))
        .doc("bytes", "Size of the BAR1 aperture, in bytes."),
    gauge("DCGM_FI_DEV_BAR1_USED_BYTES", 1601, Instance, call(BAR1, |n| pick::raw(n, slot::USED)))
        .doc("bytes", "BAR1 aperture that is mapped, in bytes."),
    gauge("DCGM_FI_DEV_BAR1_FREE_BYTES", 1602, Instance, call(BAR1, |n| pick::raw(n, slot::FREE)))
        .doc("bytes", "BAR1 aperture that is free, in bytes."),
];
