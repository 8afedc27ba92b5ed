// Package msccl reads algorithms of MSCCL: an XML file with the steps of each thread block of each
// GPU, on chunks of buffers.
//
//	<algo name="ring" coll="allreduce" inplace="1" ngpus="2" nchunksperloop="2">
//	  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
//	    <tb id="0" send="1" recv="1" chan="0">
//	      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1"
//	            deps="-1" hasdep="0"/>
//
// In comes the file; out comes an Algorithm, from which Compile makes the programs of a collective
// for a size. Before that the algorithm is proved: it is executed symbolically in several orders,
// and must leave every contribution exactly once where the collective wants it. What is wrong is an
// error with the GPU, the thread block, the step and the chunk.
//
// A thread block executes its steps in order: a step begins when the receives before it are
// complete, and overwrites nothing that is still being sent. The k-th send of a block to a GPU
// belongs to the k-th receive of the block there with the same channel.
//
// Start reading at Parse, then Compile in compile.go.
package msccl
