namespace convladder {

// In the project, a kernel that is compiled when the program runs. There is none here: a stage then runs the one that
// is compiled with the file, that of its default configuration.
class CompiledKernel {
 public:
  static constexpr bool compiled() { return false; }
  void upload_constant(const char*, const float*, std::size_t, Stream) const {}
  auto launch(dim3, dim3, std::size_t, Stream) const {
    return [](const auto&...) {};
  }
};

inline const char* compiling_unavailable() { return "this file holds the kernel of the default configuration alone"; }

}  // namespace convladder
