import { Document, Scalar, visit } from 'yaml';
import { hasUnprintable, printableJson, replaceUnprintable } from '../base/text/printable.ts';

export type DocumentFormat = 'text' | 'json' | 'yaml';

/** Output format and log verbosity. */
export interface OutputRequest {
  readonly format: DocumentFormat;
  readonly verbosity: number;
}

/**
 * A result as a document, in the order of its members. Characters that a terminal interprets or hides are
 * escaped.
 */
export function renderDocument(value: object, format: 'json' | 'yaml'): string {
  if (format === 'json') return `${printableJson(value, 2)}\n`;
  // Strings that YAML 1.1 reads as another type (`on`, `1_000`) are quoted, as Kubernetes' parsers require.
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && hasUnprintable(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return replaceUnprintable(document.toString({ lineWidth: 0 }), (code) => `\\U${code.toString(16).padStart(8, '0')}`);
}
