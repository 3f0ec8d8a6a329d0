#pragma once

#include <span>
#include <string>
#include <vector>

#include "recipe/glossary.h"

namespace tutti {

// An answer to words of other programs that name no key, kind or section of a recipe: what tutti has instead.
// Places are places of the catalogs, as place_text takes them, commands and documents.
using Guide = GlossaryEntry;

// The guides of guides.txt.
const std::vector<Guide>& guides();

// The guide for a word, in any case and with any signs between its parts; null if there is none.
const Guide* guide_for(std::span<const Guide> guides, const std::string& word);

// The text of a guide, and where to read on.
std::string guide_text(const Guide& guide);

}  // namespace tutti
