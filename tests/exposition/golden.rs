//! The page of each shape of device.

use expect_test::expect;

use crate::support::*;

#[test]
fn a_gpu_with_driver_label_xid_and_a_row_of_our_own() {
    let selection = selection(&[&FB_USED, &TEMP, &XID, &POWER], &[&DRIVER]);
    let mut reading = reading(vec![int(0, 9000), int(1, 41), int(2, 79), int(3, 300)]);
    reading.labels = vec![(0, "570.86.15".into())];
    let snapshot = snapshot(selection, vec![up(identity(0), reading)]);
    expect![[r##"
        # HELP DCGM_FI_DEV_FB_USED Help.
        # TYPE DCGM_FI_DEV_FB_USED gauge
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 9000
        # HELP DCGM_FI_DEV_GPU_TEMP Help.
        # TYPE DCGM_FI_DEV_GPU_TEMP gauge
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 41
        # HELP DCGM_FI_DEV_XID_ERRORS Help.
        # TYPE DCGM_FI_DEV_XID_ERRORS gauge
        DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15",err_code="79",err_msg="GPU fell off the PCIe bus"} 79
        # HELP nvml_power_watts Help.
        # TYPE nvml_power_watts gauge
        nvml_power_watts{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 300
    "##]].assert_eq(&selected(&snapshot, &settings()));
}
