#pragma once

#include <span>
#include <string>
#include <vector>

namespace tutti {

// An answer to a word that users bring from elsewhere, and that names nothing in a recipe.
struct Guide {
  std::vector<std::string> words;  // lower case: "fine-tuning" is "fine tuning"
  std::string text;                // what tutti has for it: a line
  std::vector<std::string> see;    // places of the catalogs, as place_text takes them, commands, documents
};

const std::vector<Guide>& guides();

// The guide for a word, in any case and with any signs between its parts; null if there is none.
const Guide* guide_for(std::span<const Guide> guides, const std::string& word);

// Its text, and where to read on.
std::string guide_text(const Guide& guide);

}  // namespace tutti
