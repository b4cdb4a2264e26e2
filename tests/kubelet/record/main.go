// record asks a kubelet's pod-resources API and keeps what it answered: the bytes as they came,
// for tests of other decoders, and as Kubernetes' own types read them, to compare with.
//
//	record SOCKET [FILE-PREFIX]
//
// Standard output and PREFIX.txt have a line per device, in the kubelet's order:
//
//	list NAMESPACE POD CONTAINER RESOURCE ID NUMA-NODES
//	allocatable RESOURCE ID NUMA-NODES
//
// with "-" where there is nothing: a container without devices, a device without NUMA nodes.
// PREFIX.list.bin and PREFIX.allocatable.bin have one message each.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	// What Kubernetes' own clients take; gRPC's default is less.
	maxAnswer = 16 << 20
	timeout   = 10 * time.Second
)

// asTheyCome hands messages through as bytes.
type asTheyCome struct{}

func (asTheyCome) Name() string                        { return "proto" }
func (asTheyCome) Marshal(message any) ([]byte, error) { return message.([]byte), nil }
func (asTheyCome) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte{}, data...)
	return nil
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fail(fmt.Errorf("usage: record SOCKET [FILE-PREFIX]"))
	}
	connection, err := grpc.NewClient("unix://"+os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(asTheyCome{}), grpc.MaxCallRecvMsgSize(maxAnswer)))
	fail(err)
	defer connection.Close()

	var list podresources.ListPodResourcesResponse
	listBytes := ask(connection, podresources.PodResourcesLister_List_FullMethodName, &list)
	var allocatable podresources.AllocatableResourcesResponse
	allocatableBytes := ask(connection, podresources.PodResourcesLister_GetAllocatableResources_FullMethodName, &allocatable)

	text := strings.Join(append(listLines(&list), allocatableLines(&allocatable)...), "")
	fmt.Print(text)
	if len(os.Args) == 3 {
		prefix := os.Args[2]
		fail(os.WriteFile(prefix+".list.bin", listBytes, 0o644))
		fail(os.WriteFile(prefix+".allocatable.bin", allocatableBytes, 0o644))
		fail(os.WriteFile(prefix+".txt", []byte(text), 0o644))
	}
}

func ask(connection *grpc.ClientConn, method string, answer proto.Message) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var bytes []byte
	if err := connection.Invoke(ctx, method, []byte{}, &bytes); err != nil {
		fail(fmt.Errorf("%s: %w", method, err))
	}
	fail(proto.Unmarshal(bytes, answer))
	return bytes
}

func listLines(list *podresources.ListPodResourcesResponse) []string {
	var lines []string
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			holder := fmt.Sprintf("list %s %s %s", pod.GetNamespace(), pod.GetName(), container.GetName())
			if len(container.GetDevices()) == 0 {
				lines = append(lines, holder+" - - -\n")
			}
			for _, devices := range container.GetDevices() {
				lines = append(lines, deviceLines(holder, devices)...)
			}
		}
	}
	return lines
}

func allocatableLines(answer *podresources.AllocatableResourcesResponse) []string {
	var lines []string
	for _, devices := range answer.GetDevices() {
		lines = append(lines, deviceLines("allocatable", devices)...)
	}
	return lines
}

func deviceLines(start string, devices *podresources.ContainerDevices) []string {
	var nodes []string
	for _, node := range devices.GetTopology().GetNodes() {
		nodes = append(nodes, strconv.FormatInt(node.GetID(), 10))
	}
	if len(nodes) == 0 {
		nodes = []string{"-"}
	}
	var lines []string
	for _, id := range devices.GetDeviceIds() {
		lines = append(lines, fmt.Sprintf("%s %s %s %s\n", start, devices.GetResourceName(), id, strings.Join(nodes, ",")))
	}
	return lines
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}
