//! The entries of the `nvmlDeviceGetFieldValues` batch, and what is derived from their growth.

/// Which part of the device a field value is asked for (`nvmlFieldValue_t.scopeId`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// 0: the device.
    Device,
    /// `UINT_MAX`: the sum over all links.
    AllLinks,
    /// One link.
    Link(u8),
    /// Every link of the device, one entry each: for rows of `Entity::Link`.
    EachLink,
}

/// How the union of a field value is to be read. NVML's own `valueType` is wrong for some
/// fields on some drivers (memory temperature, ECC totals), so the row says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Decode {
    /// As `valueType` says.
    Tagged,
    /// `uiVal`, whatever `valueType` says.
    U32,
    /// `ullVal`, whatever `valueType` says; an entry with no timestamp, latency and type is
    /// "not supported" (field-map: ECC off).
    U64,
}

/// One entry of the `nvmlDeviceGetFieldValues` batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldValueRead {
    /// `NVML_FI_*` in the numbering of drivers before 580.82; 251 to 273 are translated.
    pub id: u16,
    /// The scope asked for.
    pub scope: Scope,
    /// How the answer is decoded.
    pub decode: Decode,
}

/// `NVLink` throughput, derived from the byte counters 138 (transmitted) and 139 (received).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RateRead {
    /// Count transmitted data.
    pub tx: bool,
    /// Count received data.
    pub rx: bool,
    /// One link, all links, or each link.
    pub scope: Scope,
    /// The unit served.
    pub unit: RateUnit,
}

/// The units in which DCGM serves `NVLink` throughput. Neither follows from the other: the older
/// one divides KiB by 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RateUnit {
    /// Thousands of KiB per second, cut to an integer: what DCGM calls MB/s.
    ThousandKib,
    /// Bytes per second, as DCGM 4.7's base-unit fields.
    Bytes,
}

impl RateRead {
    /// The field ids of the byte counters that the rate is derived from, in KiB.
    pub fn counters(self) -> impl Iterator<Item = FieldValueRead> {
        [(self.tx, NVLINK_TX_KIB), (self.rx, NVLINK_RX_KIB)]
            .into_iter()
            .filter(|(wanted, _)| *wanted)
            .map(move |(_, id)| FieldValueRead { id, scope: self.scope, decode: Decode::Tagged })
    }
}

/// `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX`: KiB sent, growing.
pub const NVLINK_TX_KIB: u16 = 138;
/// `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX`: KiB received, growing.
pub const NVLINK_RX_KIB: u16 = 139;
