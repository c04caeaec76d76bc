# Run as a script: writes a C++ source that holds the text of files.
#   cmake -DROOT=folder -DFILES=a:b:c -DOUTPUT=file.cpp -P Embed.cmake     (paths relative to ROOT)
string(REPLACE ":" ";" files "${FILES}")
set(entries "")
foreach(file IN LISTS files)
  file(READ ${ROOT}/${file} text)
  string(APPEND entries "    {\"${file}\", R\"embedded(${text})embedded\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"common/harness/device/gpu/embedded_files.hpp\"

namespace convladder {

std::span<const EmbeddedFile> embedded_files() {
  static constexpr EmbeddedFile kFiles[] = {
${entries}  };
  return kFiles;
}

}  // namespace convladder
")
