#pragma once

#include <string>
#include <vector>

namespace tutti {

// True for names that differ in upper and lower case, blanks, '-' and '_' alone: "SpeedMonitor",
// "speed_monitor".
bool same_name(const std::string& one, const std::string& other);

// True for names that a slip of the finger makes of each other: a letter in three more, fewer, other or
// exchanged with the next.
bool similar_name(const std::string& one, const std::string& other);

// The candidate that `name` stands for most likely, or "" if none does. In this order: the same but for case,
// '-' and '_'; a slip of the finger; the beginning of the other ("cosine"); a word of the other ("bf16" of
// "amp_bf16"); its initials ("learning_rate", "lr"); half of the letters.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// Letters more, fewer, other, or exchanged with the next.
int edit_distance(const std::string& a, const std::string& b);

}  // namespace tutti
