// deviceplugin announces devices to a kubelet's device manager, as NVIDIA's device plugin does:
// ids are all that the kubelet learns of them, and nothing is handed to containers.
//
//	deviceplugin RESOURCE ID[=NUMA-NODE]...
//
// One process announces one resource: `nvidia.com/gpu GPU-...`, `nvidia.com/gpu.shared GPU-...::0
// GPU-...::1`, `nvidia.com/mig-1g.18gb MIG-...`. It registers again when the kubelet was restarted,
// which shows in its socket being gone: a kubelet that starts clears that folder.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	timeout = 5 * time.Second
	// Between looks for the socket, and tries to register.
	interval = 200 * time.Millisecond
)

type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	resource string
	devices  []*deviceplugin.Device
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("deviceplugin: ")
	if len(os.Args) < 3 {
		log.Fatal("usage: deviceplugin RESOURCE ID[=NUMA-NODE]...")
	}
	devices, err := parse(os.Args[2:])
	if err != nil {
		log.Fatal(err)
	}
	p := &plugin{resource: os.Args[1], devices: devices}
	for {
		if err := p.serveUntilForgotten(); err != nil {
			log.Fatal(err)
		}
	}
}

func parse(words []string) ([]*deviceplugin.Device, error) {
	var devices []*deviceplugin.Device
	for _, word := range words {
		id, node, found := strings.Cut(word, "=")
		device := &deviceplugin.Device{ID: id, Health: deviceplugin.Healthy}
		if found {
			number, err := strconv.ParseInt(node, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: the NUMA node is no number", word)
			}
			nodes := []*deviceplugin.NUMANode{{ID: number}}
			device.Topology = &deviceplugin.TopologyInfo{Nodes: nodes}
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// serveUntilForgotten serves and registers, until a kubelet that starts has removed the socket.
func (p *plugin) serveUntilForgotten() error {
	name := strings.ReplaceAll(p.resource, "/", "_") + ".sock"
	socket := filepath.Join(deviceplugin.DevicePluginPath, name)
	if err := os.MkdirAll(deviceplugin.DevicePluginPath, 0o755); err != nil {
		return err
	}
	// A socket left by a plugin that was killed.
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	defer server.Stop()

	registered := false
	for {
		if _, err := os.Stat(socket); err != nil {
			log.Printf("%s: the kubelet was restarted", p.resource)
			return nil
		}
		if !registered {
			// A kubelet that is not there yet is no failure, it is asked again.
			registered = p.register(name) == nil
		}
		time.Sleep(interval)
	}
}

func (p *plugin) register(endpoint string) error {
	connection, err := grpc.NewClient("unix://"+deviceplugin.KubeletSocket,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err = deviceplugin.NewRegistrationClient(connection).Register(ctx, &deviceplugin.RegisterRequest{
		Version:      deviceplugin.Version,
		Endpoint:     endpoint,
		ResourceName: p.resource,
	})
	if err == nil {
		log.Printf("%s: registered with %d devices", p.resource, len(p.devices))
	}
	return err
}

func (p *plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

// ListAndWatch tells the devices once: they never change.
func (p *plugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	answer := &deviceplugin.AllocateResponse{}
	for _, container := range request.GetContainerRequests() {
		log.Printf("%s: allocated %v", p.resource, container.GetDevicesIds())
		answer.ContainerResponses = append(answer.ContainerResponses, &deviceplugin.ContainerAllocateResponse{})
	}
	return answer, nil
}
