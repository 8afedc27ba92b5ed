// Package uml runs a program under its own Linux kernel: User Mode Linux, a kernel that runs as an
// ordinary process. It provides bridges and queueing disciplines that the machine's kernel may
// lack. It needs no privileges and no image, since its root is the machine's own file system
// (hostfs).
//
// Input: a Command. Output: what the program writes, as it writes it, and how it ended. The
// program's files in /run, /dev and its own /tmp (TMPDIR) vanish with the kernel. All other files
// are the machine's and belong to the calling user.
//
// Three processes take part. All of them run the present program, which calls Role first:
//
//	outside   Run          starts the stage, and talks to init
//	stage     uml-stage    a PID and mount namespace if permitted; the kernel's memory; ends
//	                       with Run's process
//	  linux.uml            the kernel
//	inside    uml-init     the first process under the new kernel: mounts, modules, network;
//	                       starts the program, forwards its output and its exit code
//
// Run and init exchange frames (frame.go) over a serial line of the kernel, which is a socket pair
// outside. The kernel's console is a second one; its last lines explain failures. There is no other
// way in: the management console, a socket that accepts commands, is never created.
//
// The program is root inside, and may access the machine's files like the calling user. Start
// reading at Run (run.go). See docs/kernel.md.
package uml
