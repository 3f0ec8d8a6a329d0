#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "tests/tidy/rules.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

bool is_cmake(const SourceFile& file) {
  return file.file_name() == "CMakeLists.txt" || fs::path(file.path).extension() == ".cmake";
}

// The words of a CMake file, comments left out.
std::set<std::string> words_of(const SourceFile& file) {
  static const std::regex word(R"re([^\s()"]+)re");
  std::set<std::string> words;
  for (const std::string& line : file.lines) {
    const std::string code = line.substr(0, line.find('#'));
    for (auto i = std::sregex_iterator(code.begin(), code.end(), word); i != std::sregex_iterator(); ++i) {
      words.insert(i->str());
    }
  }
  return words;
}

// Every path that a CMake file names: relative to its own folder, or to the root by ${CMAKE_SOURCE_DIR}.
std::set<std::string> listed_paths(const SourceTree& tree) {
  static const std::string root = "${CMAKE_SOURCE_DIR}/";
  std::set<std::string> listed;
  for (const SourceFile& file : tree) {
    if (!is_cmake(file)) continue;
    for (const std::string& word : words_of(file)) {
      const bool from_root = word.rfind(root, 0) == 0;
      listed.insert(from_root ? word.substr(root.size())
                              : (fs::path(file.path).parent_path() / word).string());
    }
  }
  return listed;
}

// Sources that are built by themselves, outside the tree.
bool is_own_project(const SourceFile& file) {
  return std::any_of(file.lines.begin(), file.lines.end(),
                     [](const std::string& line) { return line.starts_with("project("); });
}

// True if a test folder's CMake file takes all tests below.
bool is_below_all(const SourceTree& tree, const SourceFile& test) {
  if (!test.path.ends_with("_test.cpp")) return false;
  return std::any_of(tree.begin(), tree.end(), [&](const SourceFile& file) {
    if (file.file_name() != "CMakeLists.txt" || words_of(file).count("ALL_BELOW") == 0) return false;
    return test.path.starts_with(fs::path(file.path).parent_path().string() + '/');
  });
}

}  // namespace

Findings unlisted_sources(const SourceTree& tree) {
  const std::set<std::string> listed = listed_paths(tree);
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!file.is_cpp() || file.is_header() || listed.count(file.path) > 0) continue;
    if (is_below_all(tree, file)) continue;
    findings.push_back(finding(file, 0, "no CMake file lists it"));
  }
  return findings;
}

Findings unlisted_folders(const SourceTree& tree) {
  const std::set<std::string> listed = listed_paths(tree);
  Findings findings;
  for (const SourceFile& file : tree) {
    const std::string folder = fs::path(file.path).parent_path();
    if (file.file_name() != "CMakeLists.txt" || folder.empty() || listed.count(folder) > 0) continue;
    if (is_own_project(file)) continue;
    findings.push_back(finding(file, 0, "the CMakeLists.txt above does not add it"));
  }
  return findings;
}

// A room is a pair of files, or one without the other.
Findings crowded_folders(const SourceTree& tree) {
  constexpr std::size_t kRooms = 20;
  std::map<std::string, std::set<std::string>> rooms;
  for (const SourceFile& file : tree) {
    if (!file.is_cpp() || file.folder() == "tests") continue;
    const fs::path path = file.path;
    rooms[path.parent_path()].insert(path.stem());
  }
  Findings findings;
  for (const auto& [folder, names] : rooms) {
    if (names.size() > kRooms) findings.push_back(folder + " has " + std::to_string(names.size()) + " rooms");
  }
  return findings;
}

}  // namespace tutti
