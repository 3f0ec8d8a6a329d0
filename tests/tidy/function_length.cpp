#include "tests/tidy/function_length.h"

#include <cctype>
#include <regex>

namespace tutti {
namespace {

enum class Block { kScope, kFunction, kOther };

// The kind of block that a brace opens, by the text since the last ';', '{' or '}'.
Block classify(const std::string& header) {
  static const std::regex scope(
      R"re(^\s*(template\s*<.*>\s*)?(inline\s+)?(namespace|class|struct|union|enum|extern)\b)re"
      R"re([^()]*(\([^()]*\)[^()]*)?$)re");
  if (std::regex_search(header, scope)) return Block::kScope;
  return header.find('(') == std::string::npos ? Block::kOther : Block::kFunction;
}

class BraceWalk {
 public:
  void read(char c, int line) {
    if (c == '{') {
      open(line);
    } else if (c == '}') {
      close(line);
    } else if (c == ';') {
      header_.clear();
    } else {
      if (header_.empty() && std::isspace(static_cast<unsigned char>(c))) return;
      if (header_.empty()) header_line_ = line;
      header_ += c;
    }
  }

  std::vector<FunctionSpan> functions;

 private:
  void open(int line) {
    const bool inside = inside_function();
    const Block block = inside ? Block::kOther : classify(header_);
    blocks_.push_back(block);
    if (block == Block::kFunction) functions.push_back({header_.empty() ? line : header_line_, line});
    header_.clear();
  }

  void close(int line) {
    header_.clear();
    if (blocks_.empty()) return;
    if (blocks_.back() == Block::kFunction) functions.back().last = line;
    blocks_.pop_back();
  }

  bool inside_function() const {
    for (const Block block : blocks_) {
      if (block == Block::kFunction) return true;
    }
    return false;
  }

  std::vector<Block> blocks_;
  std::string header_;
  int header_line_ = 0;
};

}  // namespace

std::vector<FunctionSpan> find_functions(const std::vector<std::string>& code) {
  BraceWalk walk;
  for (size_t i = 0; i < code.size(); ++i) {
    for (const char c : code[i]) walk.read(c, static_cast<int>(i) + 1);
    walk.read(' ', static_cast<int>(i) + 1);
  }
  return walk.functions;
}

}  // namespace tutti
