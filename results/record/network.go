package record

// NetworkMap is network.json: the network of a run as weft view draws it.
type NetworkMap struct {
	Title     string    `json:"topology"` // in words
	Width     float64   `json:"width"`    // of the drawing, in the unit of X and Y
	Height    float64   `json:"height"`
	BaseRTTUS float64   `json:"base_rtt_us"`
	Nodes     []MapNode `json:"nodes"`
	Ports     []MapPort `json:"ports"` // both directions of every link; frames name them
}

// MapNode is a host or a switch.
type MapNode struct {
	Name string  `json:"name"`
	Tier string  `json:"tier"`
	Host bool    `json:"host,omitempty"`
	X    float64 `json:"x"` // centre
	Y    float64 `json:"y"`
}

// MapPort is one direction of a link, with the queue at its start. Thresholds are absent where
// there are none.
type MapPort struct {
	Name        string `json:"name"`
	From        int    `json:"from"` // index of a node
	To          int    `json:"to"`
	RateBPS     int64  `json:"rate_bps"`
	BufferBytes int64  `json:"buffer_bytes,omitempty"`
	KminBytes   int64  `json:"ecn_kmin_bytes,omitempty"`
	KmaxBytes   int64  `json:"ecn_kmax_bytes,omitempty"`
}
