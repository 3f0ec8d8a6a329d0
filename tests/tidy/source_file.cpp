#include "tests/tidy/source_file.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Splits C++ into code, comments and contents of string literals, character by character.
class CommentStripper {
 public:
  explicit CommentStripper(const std::string& text) : text_(text) {}

  void run() {
    while (at_ < text_.size()) step();
  }

  std::string code;
  std::string comments;
  std::string strings;

 private:
  bool looking_at(const char* prefix) const {
    return text_.compare(at_, std::string(prefix).size(), prefix) == 0;
  }

  void step() {
    if (looking_at("//")) {
      take_until(text_.find('\n', at_), comments);
    } else if (looking_at("/*")) {
      take_until(end_of("*/", at_ + 2), comments);
    } else if (looking_at("R\"")) {
      skip_until(end_of_raw_string());
    } else if (text_[at_] == '"' || (text_[at_] == '\'' && !is_digit_separator())) {
      skip_until(end_of_literal(text_[at_]));
    } else {
      put(text_[at_++], code);
    }
  }

  bool is_digit_separator() const {
    return at_ > 0 && std::isalnum(static_cast<unsigned char>(text_[at_ - 1]));
  }

  size_t end_of(const std::string& closing, size_t from) const {
    const size_t found = text_.find(closing, from);
    return found == std::string::npos ? text_.size() : found + closing.size();
  }

  size_t end_of_raw_string() const {
    const size_t open = text_.find('(', at_);
    if (open == std::string::npos) return text_.size();
    return end_of(")" + text_.substr(at_ + 2, open - at_ - 2) + "\"", open);
  }

  size_t end_of_literal(char quote) const {
    size_t i = at_ + 1;
    while (i < text_.size() && text_[i] != quote && text_[i] != '\n') i += text_[i] == '\\' ? 2 : 1;
    return i + 1;
  }

  void take_until(size_t end, std::string& out) {
    for (end = std::min(end, text_.size()); at_ < end; ++at_) put(text_[at_], out);
  }

  void skip_until(size_t end) {
    put('"', code);
    for (end = std::min(end, text_.size()); at_ < end; ++at_) put(text_[at_], strings);
    put('"', code);
  }

  // Line breaks go to all, so that line numbers agree.
  void put(char c, std::string& out) {
    if (c == '\n') {
      code += c;
      comments += c;
      strings += c;
    } else {
      out += c;
    }
  }

  const std::string& text_;
  size_t at_ = 0;
};

// Blanks preprocessor lines with their continuations, and collects what is included.
void take_preprocessor_lines(SourceFile& file) {
  static const std::regex include(R"re(^\s*#\s*include\s*("[^"]+"|<[^>]+>))re");
  static const std::regex directive(R"(^\s*#)");
  file.includes.resize(file.lines.size());
  bool continued = false;
  for (size_t i = 0; i < file.code.size(); ++i) {
    if (!continued && !std::regex_search(file.code[i], directive)) continue;
    std::smatch match;
    if (std::regex_search(file.lines[i], match, include)) {
      file.includes[i] = match[1];
      file.strings[i].clear();
    }
    continued = !file.code[i].empty() && file.code[i].back() == '\\';
    file.code[i].clear();
  }
}

bool has_extension(const std::string& path, std::initializer_list<const char*> extensions) {
  const std::string extension = fs::path(path).extension();
  for (const char* candidate : extensions) {
    if (extension == candidate) return true;
  }
  return false;
}

bool is_of_interest(const fs::path& path) {
  static const std::set<std::string> names{"CMakeLists.txt", "Makefile", "run"};
  return names.count(path.filename()) > 0 ||
         has_extension(path, {".h", ".cpp", ".cu", ".in", ".cmake", ".py", ".sh", ".toml", ".md"});
}

bool is_foreign_folder(const fs::path& path) {
  const std::string name = path.filename();
  const bool hidden = name[0] == '.' && name != ".ci";
  return hidden || name.rfind("build", 0) == 0 || name == "runs" || name == "__pycache__" ||
         fs::exists(path / "CMakeCache.txt");
}

std::string read_file(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

}  // namespace

bool SourceFile::is_cpp() const { return has_extension(path, {".h", ".cpp", ".cu"}); }
bool SourceFile::is_header() const { return has_extension(path, {".h"}); }
std::string SourceFile::file_name() const { return fs::path(path).filename(); }

std::string SourceFile::folder() const {
  const size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string SourceFile::subfolder() const {
  const size_t first = path.find('/');
  const size_t second = first == std::string::npos ? first : path.find('/', first + 1);
  return second == std::string::npos ? "" : path.substr(first + 1, second - first - 1);
}

SourceFile parse_source(const std::string& path, const std::string& text) {
  SourceFile file{path, split_lines(text), {}, {}, {}, {}};
  if (!file.is_cpp()) return file;
  CommentStripper stripper(text);
  stripper.run();
  file.code = split_lines(stripper.code);
  file.comments = split_lines(stripper.comments);
  file.strings = split_lines(stripper.strings);
  file.code.resize(file.lines.size());
  file.comments.resize(file.lines.size());
  file.strings.resize(file.lines.size());
  take_preprocessor_lines(file);
  return file;
}

SourceTree read_source_tree(const std::string& root) {
  SourceTree tree;
  auto walk = fs::recursive_directory_iterator(root);
  for (auto entry = begin(walk); entry != end(walk); ++entry) {
    if (entry->is_directory()) {
      if (is_foreign_folder(entry->path())) entry.disable_recursion_pending();
    } else if (is_of_interest(entry->path())) {
      tree.push_back(parse_source(fs::relative(entry->path(), root), read_file(entry->path())));
    }
  }
  return tree;
}

}  // namespace tutti
