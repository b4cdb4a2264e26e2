//! The messages of the kubelet's pod-resources service, `v1.PodResourcesLister` (KEP-606, -2043,
//! -3695).
//!
//! Field numbers are those of Kubernetes' `podresources/v1` API. Only fields that are used are
//! here; the decoder skips all others, so newer kubelets are understood. Requests have no fields.

/// Path of the call that lists what pods hold.
pub const LIST: &str = "/v1.PodResourcesLister/List";

/// Path of the call that lists what the node can hand out.
pub const GET_ALLOCATABLE: &str = "/v1.PodResourcesLister/GetAllocatableResources";

/// Answer of [`LIST`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListPodResourcesResponse {
    /// All pods of the node, with devices and without, in no order.
    #[prost(message, repeated, tag = "1")]
    pub pod_resources: Vec<PodResources>,
}

/// Answer of [`GET_ALLOCATABLE`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct AllocatableResourcesResponse {
    /// Healthy devices, held or free. Those of DRA drivers are not among them.
    #[prost(message, repeated, tag = "1")]
    pub devices: Vec<ContainerDevices>,
}

/// One pod.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PodResources {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// Its containers, and those init containers that go on running (sidecars).
    #[prost(message, repeated, tag = "3")]
    pub containers: Vec<ContainerResources>,
}

/// One container.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContainerResources {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Devices of device plugins.
    #[prost(message, repeated, tag = "2")]
    pub devices: Vec<ContainerDevices>,
    /// Devices of DRA drivers, by claim.
    #[prost(message, repeated, tag = "5")]
    pub dynamic_resources: Vec<DynamicResource>,
}

/// Devices of one resource. Newer kubelets make an entry of each device, older ones group them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContainerDevices {
    /// The resource's name, such as `nvidia.com/gpu`.
    #[prost(string, tag = "1")]
    pub resource_name: String,
    /// Ids, as the device plugin gave them.
    #[prost(string, repeated, tag = "2")]
    pub device_ids: Vec<String>,
}

/// A claim that a container uses.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DynamicResource {
    /// The `ResourceClaim`'s name.
    #[prost(string, tag = "2")]
    pub claim_name: String,
    /// Its namespace.
    #[prost(string, tag = "3")]
    pub claim_namespace: String,
    /// Devices that it was given.
    #[prost(message, repeated, tag = "4")]
    pub claim_resources: Vec<ClaimResource>,
}

/// One device of a claim.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ClaimResource {
    /// The driver's name.
    #[prost(string, tag = "2")]
    pub driver_name: String,
    /// The driver's pool.
    #[prost(string, tag = "3")]
    pub pool_name: String,
    /// The device's name in the pool.
    #[prost(string, tag = "4")]
    pub device_name: String,
    /// Which share of a device with consumable capacity (KEP-5075).
    #[prost(string, optional, tag = "5")]
    pub share_id: Option<String>,
}
