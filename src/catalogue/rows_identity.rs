//! Who the GPU is, and with what software: facts read once.

use super::prelude::*;

/// A numeric fact typed as a gauge.
const fn number(name: &'static str, id: u16, entity: Entity, fact: Fact) -> Field {
    gauge(name, id, entity, Read::Fact(fact))
}

#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    label("DCGM_FI_DRIVER_VERSION", 1, Node, Fact::DriverVersion)
        .doc("text", "Version of the driver.")
        .renamed("DCGM_FI_SYSTEM_DRIVER_VERSION").on(),
    label("DCGM_FI_NVML_VERSION", 2, Node, Fact::NvmlVersion)
        .doc("text", "Version of the NVML library.")
        .renamed("DCGM_FI_SYSTEM_NVML_VERSION"),
    gauge("DCGM_FI_DEV_COUNT", 4, Node, plain(Call::DeviceCount))
        .doc("count", "Number of GPUs in the node, those that may not be opened included.")
        .renamed("DCGM_FI_SYSTEM_GPU_QUANTITY"),
    number("DCGM_FI_CUDA_DRIVER_VERSION", 5, Node, Fact::CudaDriverVersion)
        .doc("version", "Newest CUDA version that the driver supports, as 1000 times major plus 10 times minor."),

    label("DCGM_FI_DEV_NAME", 50, Gpu, Fact::Name)
        .doc("text", "Product name of the GPU.")
        .renamed("DCGM_FI_DEV_GPU_NAME"),
    label("DCGM_FI_DEV_BRAND", 51, Gpu, Fact::Brand)
        .doc("text", "Brand under which the GPU is sold.")
        .renamed("DCGM_FI_DEV_GPU_BRAND"),
    number("DCGM_FI_DEV_NVML_INDEX", 52, Gpu, Fact::NvmlIndex)
        .doc("index", "Index of the GPU in NVML's order."),
    label("DCGM_FI_DEV_SERIAL", 53, Gpu, Fact::Serial)
        .doc("text", "Serial number of the board.")
        .renamed("DCGM_FI_DEV_BOARD_SERIAL"),
    label("DCGM_FI_DEV_UUID", 54, Gpu, Fact::Uuid)
        .doc("text", "UUID of the GPU.")
        .renamed("DCGM_FI_DEV_GPU_UUID"),
    number("DCGM_FI_DEV_MINOR_NUMBER", 55, Gpu, Fact::MinorNumber)
        .doc("number", "Number of the GPU's device file.")
        .renamed("DCGM_FI_DEV_GPU_MINOR_NUMBER"),
    label("DCGM_FI_DEV_OEM_INFOROM_VER", 56, Gpu, Fact::InforomOem)
        .doc("text", "Version of the InfoROM's OEM object.")
        .renamed("DCGM_FI_DEV_INFOROM_OEM_VERSION"),
    label("DCGM_FI_DEV_PCI_BUSID", 57, Gpu, Fact::PciBusId)
        .doc("text", "PCI address of the GPU.")
        .renamed("DCGM_FI_DEV_PCI_BUS_ID"),
    number("DCGM_FI_DEV_PCI_COMBINED_ID", 58, Gpu, Fact::PciCombinedId)
        .doc("id", "PCI device id times 65536 plus vendor id."),
    number("DCGM_FI_DEV_PCI_SUBSYS_ID", 59, Gpu, Fact::PciSubsystemId)
        .doc("id", "PCI subsystem id."),
    number("DCGM_FI_DEV_CUDA_COMPUTE_CAPABILITY", 63, Gpu, Fact::CudaComputeCapability)
        .doc("version", "CUDA compute capability, as 65536 times major plus minor.")
        .renamed("DCGM_FI_CUDA_GPU_COMPUTE_CAPABILITY"),
    label("DCGM_FI_DEV_ECC_INFOROM_VER", 80, Gpu, Fact::InforomEcc)
        .doc("text", "Version of the InfoROM's ECC object.")
        .renamed("DCGM_FI_DEV_INFOROM_ECC_VERSION"),
    label("DCGM_FI_DEV_POWER_INFOROM_VER", 81, Gpu, Fact::InforomPower)
        .doc("text", "Version of the InfoROM's power object.")
        .renamed("DCGM_FI_DEV_INFOROM_POWER_VERSION"),
    label("DCGM_FI_DEV_INFOROM_IMAGE_VER", 82, Gpu, Fact::InforomImage)
        .doc("text", "Version of the InfoROM as a whole.")
        .renamed("DCGM_FI_DEV_INFOROM_IMAGE_VERSION"),
    number("DCGM_FI_DEV_INFOROM_CONFIG_CHECK", 83, Gpu, Fact::InforomChecksum)
        .doc("checksum", "Checksum over the configuration stored in the InfoROM.")
        .renamed("DCGM_FI_DEV_INFOROM_CHECKSUM"),
    number("DCGM_FI_DEV_INFOROM_CONFIG_VALID", 84, Gpu, Fact::InforomValid)
        .doc("0/1", "Whether the InfoROM is intact (1) or corrupt (0), looked at once an hour.")
        .renamed("DCGM_FI_DEV_INFOROM_VALID").on(),
    label("DCGM_FI_DEV_VBIOS_VERSION", 85, Gpu, Fact::Vbios)
        .doc("text", "Version of the VBIOS."),
];
