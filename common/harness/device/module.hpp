/// @file
/// Modules: parts that stand on a library which a machine may lack. Each is a file beside the program, loaded when it
/// is first needed, so that a program runs without the library.
#pragma once
#include <string>

namespace convladder {

/// A module, and the words for its absence.
struct ModuleSource {
  const char* file;      ///< "libconvladder_cudnn.so"
  const char* function;  ///< the one that it offers, extern "C"
  const char* library;   ///< "cuDNN"
  const char* soname;    ///< "libcudnn.so.9"
  const char* remedy;    ///< how to install the library: "pip install nvidia-cudnn-cu13"
};

/// The module's function, or why there is none.
struct Module {
  void* function = nullptr;
  std::string unavailable;
};

/// Loads a module; it is never unloaded. The module and the program are built by one compiler, so C++ types may pass
/// between them.
Module load_module(const ModuleSource& source);

}  // namespace convladder
