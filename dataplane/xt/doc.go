// Package xt holds the xtables extensions that rules of ours use, as values
// and as the bytes that the kernel's nft_compat takes and lists.
//
// Guarantees:
//   - Each constructor gives the bytes that iptables-nft 1.8.9 writes for the
//     same option, proven against bytes that the tool has left in a kernel.
//   - Payloads are padded to the kernel's XT_ALIGN (linux/netfilter/x_tables.h),
//     8 bytes, and fields private to the kernel are zero, as it lists them: what
//     was sent and what is listed are the same bytes.
//   - Parsing takes any bytes, whatever their length, and never panics.
//
// Payloads travel as raw bytes (Unknown of google/nftables/xt), because that
// package has no type for most of these extensions, and allocates what a
// payload tells it to for MASQUERADE.
package xt
