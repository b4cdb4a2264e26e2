//! What an XID means, in a few words of our own.

/// The text for a code outside the table.
pub const UNKNOWN: &str = "Unknown Error";

/// A short English text for an XID; 0 is "no XID yet".
#[must_use]
pub fn meaning(code: u64) -> &'static str {
    usize::try_from(code).ok().and_then(|code| MEANINGS.get(code)).copied().unwrap_or(UNKNOWN)
}

/// By code.
const MEANINGS: &[&str] = &[
    "No Error",                                // 0
    "FIFO method error",                       // 1
    "software method error",                   // 2
    "unknown FIFO method",                     // 3
    "channel busy",                            // 4
    "run-out overflow",                        // 5
    "push-buffer parse error",                 // 6
    "push-buffer address error",               // 7
    "channel made no progress and timed out",  // 8
    "driver programmed GPU wrongly",           // 9
    "single-step trap",                        // 10
    "bad push buffer (missing hardware unit)", // 11
    "driver failed handling a GPU exception",  // 12
    "graphics/compute engine exception - usually out-of-bounds access or illegal instruction in the kernel", // 13
    "reserved test code",                                             // 14
    "scan-line timeout",                                              // 15
    "display engine hang",                                            // 16
    "parameter error",                                                // 17
    "bus mastering disabled in PCI config",                           // 18
    "display engine error",                                           // 19
    "MPEG push-buffer error",                                         // 20
    "motion-estimation push-buffer error",                            // 21
    "video-processor push-buffer error",                              // 22
    "error logging switched on",                                      // 23
    "semaphore timeout",                                              // 24
    "illegal push-buffer content",                                    // 25
    "framebuffer timeout",                                            // 26
    "video processor exception",                                      // 27
    "video processor 2 exception",                                    // 28
    "bitstream processor exception",                                  // 29
    "semaphore address error",                                        // 30
    "GPU page fault - usually an illegal address in the application", // 31
    "push-buffer DMA error - corrupted command stream",               // 32
    "security microcontroller error",                                 // 33
    "video decoder (MSVLD) exception",                                // 34
    "video decoder (MSPDEC) exception",                               // 35
    "video post-processor exception",                                 // 36
    "context-switch firmware got an unknown method",                  // 37
    "context-switch firmware watchdog timeout",                       // 38
    "copy engine 0 exception",                                        // 39
    "copy engine 1 exception",                                        // 40
    "copy engine 2 exception",                                        // 41
    "video image compositor exception",                               // 42
    "a channel was reset after a user fault; GPU stays healthy",      // 43
    "graphics fault during a context switch",                         // 44
    "preemptive clean-up after another error or a killed process",    // 45
    "GPU stopped processing (timeout)",                               // 46
    "NVENC0 exception",                                               // 47
    "uncorrectable (double-bit) ECC error",                           // 48
    "quiet-mode power state locked",                                  // 49
    "quiet-mode transition after channel error",                      // 50
    "quiet-mode stress test failed",                                  // 51
    "quiet-mode thermal step",                                        // 52
    "quiet-mode reduced clocks",                                      // 53
    "auxiliary power cable not connected",                            // 54
    "quiet-mode temperature read error",                              // 55
    "display channel exception",                                      // 56
    "video-memory link training failed",                              // 57
    "unstable video-memory interface",                                // 58
    "power-management microcontroller error (old drivers)",           // 59
    "video/security engine exception",                                // 60
    "power-management microcontroller breakpoint",                    // 61
    "power-management microcontroller halted",                        // 62
    "row remap (or page retirement) recorded",                        // 63
    "row remap (or page retirement) could not be recorded",           // 64
    "NVENC1 exception",                                               // 65
    "driver accessed a forbidden register (context-switch firmware)", // 66
    "context-switch firmware verification violation",                 // 67
    "NVDEC0 exception",                                               // 68
    "graphics engine class error",                                    // 69
    "copy engine 3 error",                                            // 70
    "copy engine 4 error",                                            // 71
    "copy engine 5 error",                                            // 72
    "NVENC2 exception",                                               // 73
    "NVLink error",                                                   // 74
    "copy engine 6 error",                                            // 75
    "copy engine 7 error",                                            // 76
    "copy engine 8 error",                                            // 77
    "vGPU could not start",                                           // 78
    "GPU fell off the PCIe bus",                                      // 79
    "push-buffer CRC mismatch - data damaged on the way to the GPU",  // 80
    "VGA subsystem error",                                            // 81
    "NVJPG0 error",                                                   // 82
    "NVDEC1 error",                                                   // 83
    "NVDEC2 error",                                                   // 84
    "copy engine 9 error",                                            // 85
    "optical-flow engine exception",                                  // 86
    "driver telemetry record",                                        // 87
    "NVDEC3 error",                                                   // 88
    "NVDEC4 error",                                                   // 89
    "L2 cache unit error",                                            // 90
    "reserved",                                                       // 91
    "high rate of corrected ECC errors",                              // 92
    "InfoROM write-wear limit reached",                               // 93
    "memory error contained to one application",                      // 94
    "memory error not contained",                                     // 95
    "NVDEC5 error",                                                   // 96
    "NVDEC6 error",                                                   // 97
    "NVDEC7 error",                                                   // 98
    "NVJPG1 error",                                                   // 99
    "NVJPG2 error",                                                   // 100
    "NVJPG3 error",                                                   // 101
    "NVJPG4 error",                                                   // 102
    "NVJPG5 error",                                                   // 103
    "NVJPG6 error",                                                   // 104
    "NVJPG7 error",                                                   // 105
    "out-of-band management test message",                            // 106
    "out-of-band management test message (silent)",                   // 107
    "NVLink remote translation error",                                // 108
    "context switch timed out",                                       // 109
    "security fault",                                                 // 110
    "display bundle error",                                           // 111
    "display supervisor error",                                       // 112
    "DisplayPort link training error",                                // 113
    "display pipeline underflow",                                     // 114
    "display core channel error",                                     // 115
    "display window channel error",                                   // 116
    "display cursor channel error",                                   // 117
    "display pixel pipeline error",                                   // 118
    "GSP firmware did not answer an RPC in time",                     // 119
    "GSP firmware error",                                             // 120
    "chip-to-chip (C2C) link corrected error",                        // 121
    "SPI flash read through PMU failed",                              // 122
    "SPI flash write through PMU failed",                             // 123
    "SPI flash erase through PMU failed",                             // 124
    "InfoROM file-system error",                                      // 125
    "copy engine 10 error",                                           // 126
    "copy engine 11 error",                                           // 127
    "copy engine 12 error",                                           // 128
    "copy engine 13 error",                                           // 129
    "copy engine 14 error",                                           // 130
    "copy engine 15 error",                                           // 131
    "copy engine 16 error",                                           // 132
    "copy engine 17 error",                                           // 133
    "copy engine 18 error",                                           // 134
    "copy engine 19 error",                                           // 135
    "link training failed",                                           // 136
    "peer rejected an NVLink access (privilege/fabric address) - usually an application bug", // 137
    "deep-learning accelerator error",                                // 138
    "optical-flow engine 1 error",                                    // 139
    "uncorrectable ECC error escaped page off-lining",                // 140
    "CUDA fast-path error",                                           // 141
    "NVENC3 error",                                                   // 142
    "GPU initialisation failed",                                      // 143
    "NVLink 5 SAW unit error - severity depends on sub-code",         // 144
    "NVLink 5 RLW unit error - severity depends on sub-code",         // 145
    "NVLink 5 TLW unit error - severity depends on sub-code",         // 146
    "NVLink 5 TREX unit error - severity depends on sub-code",        // 147
    "NVLink 5 NVLPW_CTRL unit error - severity depends on sub-code",  // 148
    "NVLink 5 NETIR (link down / bit errors) unit error - severity depends on sub-code", // 149
    "NVLink 5 MSE firmware unit error - severity depends on sub-code", // 150
    "confidential-computing key rotation failed",                     // 151
    "deep-learning accelerator SMMU error",                           // 152
    "deep-learning accelerator timeout",                              // 153
    "driver changed its recommended recovery action - the message names it", // 154
    "NVLink event defined by software",                               // 155
    "on-die resource retired; takes effect after reset",              // 156
    "on-die resource could not be retired",                           // 157
    "fatal GPU timeout",                                              // 158
    "coherent-interface (CHI) non-data error, Grace systems",         // 159
    "memory channel retired",                                         // 160
    "memory channel could not be retired",                            // 161
    "power-smoothing circuit back in use",                            // 162
    "power-smoothing circuit switched itself off",                    // 163
    "power-smoothing circuit near end of life",                       // 164
    "power-smoothing circuit worn out",                               // 165
    "NVLink traffic before encryption was set up (confidential computing)", // 166
    "fatal PCIe timeout",                                             // 167
    "GPU memory capacity reduced by faults in protected region",      // 168
    "SEC2 microcontroller halted",                                    // 169
    "NVLink interrupt in confidential-computing mode",                // 170
    "detail record for 48: fault was in DRAM",                        // 171
    "detail record for 48: fault was in SRAM",                        // 172
    "fatal chip-to-chip (C2C) link failure",                          // 173
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_own_text_and_others_are_unknown() {
        assert_eq!(meaning(0), "No Error");
        assert_eq!(meaning(79), "GPU fell off the PCIe bus");
        assert_eq!(meaning(173), "fatal chip-to-chip (C2C) link failure");
        assert_eq!(meaning(174), UNKNOWN);
        assert_eq!(meaning(u64::MAX), UNKNOWN);
    }

    #[test]
    fn every_text_fits_a_label_and_its_line() {
        for text in MEANINGS {
            assert!(!text.is_empty() && text.len() < 110 && !text.contains(['"', '\\', '\n']));
        }
    }
}
