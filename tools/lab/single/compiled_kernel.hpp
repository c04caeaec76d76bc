namespace convladder {

// Nothing is compiled when this program runs: it holds the kernel of the default configuration.
inline const char* compiling_unavailable() { return "this file holds the kernel of the default configuration alone"; }

}  // namespace convladder
