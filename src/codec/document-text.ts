import { parseAllDocuments } from 'yaml';

/**
 * The texts of the documents by `SourceDocument.index`, with comments but without markers (`---`, `...`).
 * @param text a file that `parseSource` accepts
 */
export function documentTexts(text: string): readonly string[] {
  const documents = parseAllDocuments(text, {
    schema: 'failsafe',
    version: '1.1',
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  });
  let start = 0;
  return (Array.isArray(documents) ? documents : []).map(({ range }) => {
    const end = range[2];
    const slice = text.slice(start, end);
    start = end;
    return withoutMarkers(slice);
  });
}

function withoutMarkers(text: string): string {
  return text
    .replace(/^\ufeff/, '')
    .replace(/^(?:%.*\r?\n)+/m, '')
    .replace(/^(?:[ \t]*\r?\n)+/, '')
    .replace(/^---(?:[ \t]*\r?\n|[ \t]+|$)/m, '')
    .replace(/^\.\.\.[ \t]*(?:#.*)?\r?\n?/gm, '');
}
