#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source_file.h"

namespace tutti {

// A sentence of a comment or of a page, with the line where its paragraph begins.
struct Sentence {
  size_t line = 0;
  std::string text;
};

// Of a header's comments: comment lines that follow each other are one paragraph.
std::vector<Sentence> sentences_of_comments(const SourceFile& file);

// Of a Markdown page: paragraphs, items of lists, cells of tables; no code.
std::vector<Sentence> sentences_of_page(const SourceFile& file);

// True for sentences of at least eight words: a reader takes a shorter sentence in at a glance.
bool is_counted(const Sentence& sentence);

// The first pronoun that stands without its noun ("it", "what", "those that fit"), or "".
std::string bare_pronoun(const Sentence& sentence);

// True if the first of several words is a pronoun without its noun: "it is full", "those that fit".
bool opens_with_pronoun(const std::string& text);

// A declared variable, parameter or function whose name is no noun: `one`, `found`, `wanted`, `of_...`.
// Parameters and variables of a lambda that fits on one line are left out.
struct EmptyName {
  size_t line = 0;
  std::string name;
};

std::vector<EmptyName> names_without_noun(const SourceFile& file);

}  // namespace tutti
