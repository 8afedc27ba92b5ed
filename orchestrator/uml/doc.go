// Package uml runs a program under a Linux kernel of its own: User Mode Linux, which is a kernel that runs as an
// ordinary process. It has the bridges and queueing disciplines that the machine's kernel may lack, needs no
// privileges, and no image, as its root is the machine's own file system (hostfs).
//
// What comes in is a Command; what goes out is what the program writes, as it writes it, and how it ended. Files that it
// leaves anywhere but in /run, /tmp of its own (TMPDIR) and /dev are the machine's, and belong to the calling user.
//
// Three processes do it, all of the program that is running now, which calls Role first thing:
//
//	outside   Run          starts the stage, and speaks with init
//	stage     uml-stage    its own PID and mount namespace where it may have one; the memory of the kernel; ends with Run's process
//	  linux.uml            the kernel
//	inside    uml-init     the first process under the new kernel: mounts, modules, network; starts the program, passes
//	                       on what it writes and how it ends
//
// Run and init speak in frames over a serial line of the kernel, which is a socket pair outside. The kernel's console
// is another: its end explains what went wrong. There is no other way in: the management console, which is a socket that
// takes orders, is never made.
//
// A program inside is root there, and may do to the machine's files what the calling user may. See docs/kernel.md.
package uml
