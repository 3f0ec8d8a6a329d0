#include "tests/fuzz/file_in_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tutti::fuzz {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    const char* given = std::getenv("TMPDIR");
    std::string pattern = std::string(given == nullptr ? "/dev/shm" : given) + "/tutti-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path;
};

bool words_count = true;

}  // namespace

const std::string& folder() {
  static const Folder folder;
  return folder.path;
}

std::string write_file(const std::string& name, const std::string& bytes) {
  const std::string path = folder() + '/' + name;
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::string source_file(const std::string& path) {
  std::ifstream file(TUTTI_SOURCE_DIR "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void ignore_words() { words_count = false; }

void require_plain(const std::string& error) {
  if (!words_count) return;
  for (const char* raw :
       {"json.exception", "filesystem error", "Exception raised from", "basic_string::", "INTERNAL ASSERT"})
    if (error.find(raw) != std::string::npos) throw std::logic_error("an error of a library: " + error);
}

}  // namespace tutti::fuzz
