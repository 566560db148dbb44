/** Parses the text of a file on a host with a pure function. */
export type ParseText = <T>(text: string, parse: (text: string) => T) => T;

export const parseEach: ParseText = (text, parse) => parse(text);

/**
 * Parses equal texts of the hosts of a run once; each parser must be the same function for all hosts.
 * @param most number of results kept for each parser: texts that all differ gain nothing from them
 */
export function parseEqualTextsOnce(most = 1_000): ParseText {
  const parsers = new Map<(text: string) => unknown, Map<string, unknown>>();
  return <T>(text: string, parse: (text: string) => T): T => {
    const results = parsers.get(parse) ?? new Map<string, unknown>();
    parsers.set(parse, results);
    if (!results.has(text)) {
      const result = parse(text);
      if (results.size >= most) results.clear();
      results.set(text, result);
    }
    return results.get(text) as T;
  };
}
