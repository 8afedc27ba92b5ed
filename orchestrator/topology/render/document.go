package render

import "weft/orchestrator/topology"

// Document is a topology as JSON, for programs. The keys are a contract.
type Document struct {
	Lab   string `json:"lab"`
	Title string `json:"topology"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
}

// Node is a host or a switch of a Document. Switches have no address.
type Node struct {
	Name string `json:"name"`
	Tier string `json:"tier"`
	Addr string `json:"address,omitempty"`
}

// Link is a link of a Document, between the nodes A and B.
type Link struct {
	Name    string  `json:"name"`
	A       string  `json:"a"`
	B       string  `json:"b"`
	RateBPS int64   `json:"rate_bps"`
	DelayUS float64 `json:"delay_us"`
	Down    bool    `json:"down,omitempty"`
}

// NewDocument returns the document of the graph g of a lab.
func NewDocument(lab string, g *topology.Graph) Document {
	d := Document{Lab: lab, Title: g.Title, Nodes: []Node{}, Links: []Link{}}
	for _, n := range g.Nodes {
		d.Nodes = append(d.Nodes, Node{n.Name, n.Tier, n.Addr})
	}
	for _, k := range g.Links {
		d.Links = append(d.Links, Link{
			k.Name, g.Nodes[k.A].Name, g.Nodes[k.B].Name, int64(k.Rate), k.Delay.Microseconds(), k.Down,
		})
	}
	return d
}
