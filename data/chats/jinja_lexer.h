#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::jinja {

enum class Part { kText, kOutput, kStatement };

// A word of a tag: a name, a number, a text without its quotes and escapes, or an operator.
struct Word {
  enum class Kind { kName, kInteger, kFloat, kText, kOperator, kEnd } kind = Kind::kEnd;
  std::string text = "";
  int line = 0;
};

// A piece of a template: text between tags, or the words of a tag.
struct Piece {
  Part part = Part::kText;
  std::string text = "";
  std::vector<Word> words = {};  // kEnd is the last
  int line = 0;
};

// Cuts a template at its tags, with blanks and line breaks removed as trim_blocks and lstrip_blocks of jinja2
// say. Throws UserError with the line.
std::vector<Piece> pieces_of(std::string_view text);

}  // namespace tutti::jinja
