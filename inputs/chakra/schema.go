package chakra

// Types of nodes.
const (
	metadataNode = 1
	memLoadNode  = 2
	memStoreNode = 3
	compNode     = 4
	sendNode     = 5
	recvNode     = 6
	collNode     = 7
)

var nodeNames = map[int]string{
	metadataNode: "METADATA_NODE", memLoadNode: "MEM_LOAD_NODE", memStoreNode: "MEM_STORE_NODE", compNode: "COMP_NODE",
	sendNode: "COMM_SEND_NODE", recvNode: "COMM_RECV_NODE", collNode: "COMM_COLL_NODE",
}

// Numbers of the fields of a node, of its attributes, and of the metadata at the beginning
// (MLCommons, schema/protobuf/et_def.proto).
const (
	nodeID       = 1
	nodeName     = 2
	nodeType     = 3
	nodeCtrlDeps = 4
	nodeDataDeps = 5
	nodeDuration = 7 // microseconds
	nodeAttr     = 10

	attrName   = 1
	attrDouble = 3
	attrFloat  = 5
	attrInt32  = 7
	attrInt64  = 9
	attrUint32 = 11
	attrUint64 = 13
	attrBool   = 27
	attrString = 29

	metaVersion = 1
	metaAttr    = 2
)

// irrelevant are the fields of a node that do not change what it does: when it began on the machine
// that was traced (6), and the tensors that it read and wrote (8, 9), whose dependencies are its
// own.
var irrelevant = map[int]bool{6: true, 8: true, 9: true}

// signed are the fields of attributes with zigzag numbers (sint32, sint64). fixed are those of 4 or
// 8 bytes.
var (
	signed = map[int]bool{15: true, 17: true}
	fixed  = map[int]bool{19: true, 21: true, 23: true, 25: true}
)

// Names of attributes.
const (
	isCPUOp  = "is_cpu_op"
	stream   = "stream"
	commType = "comm_type"
	commSize = "comm_size"
	commSrc  = "comm_src"
	commDst  = "comm_dst"
	commTag  = "comm_tag"
	commRoot = "root_rank"
	pgName   = "pg_name"
	numOps   = "num_ops"
)

// meaningless are attributes that PyTorch's observer and ASTRA-sim's generators write, and that do
// not change what a node does for a given duration.
var meaningless = map[string]bool{
	"rf_id": true, "fw_parent": true, "seq_id": true, "scope": true, "tid": true, "fw_tid": true, "op_schema": true,
	"kernel_backend": true, "kernel_file": true, "tensor_size": true, "pg_desc": true,
}

// collective is a kind of collective.
type collective struct {
	name string
	// size returns the size of the collective as nccl-tests counts it from comm_size: the bytes of
	// a rank's input.
	size func(each, ranks int64) int64
	each func(size, ranks int64) int64 // the inverse of size
}

func same(n, _ int64) int64      { return n }
func times(n, ranks int64) int64 { return n * ranks }
func over(n, ranks int64) int64  { return n / ranks }

// collectives are the kinds by comm_type (CollectiveCommType). 8 is a reduce-scatter of equal
// blocks, and so is every one here. A barrier, 9, moves no data and is refused with the others.
var collectives = map[int64]collective{
	0: {"all-reduce", same, same},
	1: {"reduce", same, same},
	2: {"all-gather", times, over},
	5: {"broadcast", same, same},
	6: {"all-to-all", same, same},
	7: {"reduce-scatter", same, same},
	8: {"reduce-scatter", same, same},
}
