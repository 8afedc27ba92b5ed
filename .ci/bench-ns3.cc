// usage: bench-ns3 K MATRIX MTU
// A fat-tree of switches with K ports, 100 Gb/s and 1 us on every link, in ns-3: each connection of MATRIX, a file of htsim, is
// a bulk transfer over TCP in packets of MTU bytes. .ci/bench-htsim measures it beside Weft and htsim.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-helper.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <fstream>
#include <iostream>

using namespace ns3;

int main(int argc, char **argv) {
	if (argc != 4) {
		std::cerr << "usage: bench-ns3 K MATRIX MTU\n";
		return 2;
	}
	const uint32_t k = std::stoul(argv[1]), half = k / 2, mtu = std::stoul(argv[3]);
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mtu));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));

	NodeContainer hosts, edges, aggs, cores;
	hosts.Create(k * half * half);
	edges.Create(k * half);
	aggs.Create(k * half);
	cores.Create(half * half);
	Ipv4NixVectorHelper routing;
	InternetStackHelper stack;
	stack.SetRoutingHelper(routing);
	stack.SetIpv6StackInstall(false);
	for (auto *all : {&hosts, &edges, &aggs, &cores})
		stack.Install(*all);

	PointToPointHelper link;
	link.SetDeviceAttribute("DataRate", StringValue("100Gbps"));
	link.SetDeviceAttribute("Mtu", UintegerValue(mtu + 100));
	link.SetChannelAttribute("Delay", StringValue("1us"));
	Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
	std::vector<Ipv4Address> address(hosts.GetN());
	auto join = [&](Ptr<Node> a, Ptr<Node> b) {
		Ipv4InterfaceContainer ends = addresses.Assign(link.Install(a, b));
		addresses.NewNetwork();
		return ends.GetAddress(0);
	};
	for (uint32_t h = 0; h < hosts.GetN(); h++)
		address[h] = join(hosts.Get(h), edges.Get(h / half));
	for (uint32_t pod = 0; pod < k; pod++)
		for (uint32_t e = 0; e < half; e++)
			for (uint32_t a = 0; a < half; a++)
				join(edges.Get(pod * half + e), aggs.Get(pod * half + a));
	for (uint32_t a = 0; a < aggs.GetN(); a++)
		for (uint32_t c = 0; c < half; c++)
			join(aggs.Get(a), cores.Get(a % half * half + c));

	const uint16_t port = 9;
	ApplicationContainer sinks;
	std::ifstream matrix(argv[2]);
	uint64_t expected = 0;
	for (std::string line; std::getline(matrix, line);) {
		unsigned from, to, id, start;
		unsigned long size;
		if (std::sscanf(line.c_str(), "%u->%u id %u start %u size %lu", &from, &to, &id, &start, &size) != 5)
			continue;
		PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
		sinks.Add(sink.Install(hosts.Get(to)));
		BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(address[to], port));
		bulk.SetAttribute("MaxBytes", UintegerValue(size));
		bulk.SetAttribute("SendSize", UintegerValue(mtu));
		bulk.Install(hosts.Get(from));
		expected += size;
	}
	Simulator::Stop(Seconds(10));
	Simulator::Run();
	uint64_t got = 0;
	for (uint32_t i = 0; i < sinks.GetN(); i++)
		got += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
	std::cout << got << " of " << expected << " bytes, " << Simulator::GetEventCount() << " events\n";
	Simulator::Destroy();
	return got == expected && got > 0 ? 0 : 1;
}
