"""Result files of other tools: read, told apart by their content, checked and judged by our rules; and written."""
