import { Document, Scalar, visit } from 'yaml';
import { hasUnprintable, printableJson, replaceUnprintable } from '../base/text/printable.ts';

export type DocumentFormat = 'text' | 'json' | 'yaml';

/** How a result is printed, and how much is logged. */
export interface OutputRequest {
  readonly format: DocumentFormat;
  readonly verbosity: number;
}

/** A result for machines, in the order of its members. It holds no character that a terminal obeys or hides: they are written as escapes. */
export function renderDocument(value: object, format: 'json' | 'yaml'): string {
  if (format === 'json') return `${printableJson(value, 2)}\n`;
  // Texts that YAML 1.1 takes for something else (`on`, `1_000`) come in quotes, as Kubernetes' readers need it.
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && hasUnprintable(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return replaceUnprintable(document.toString({ lineWidth: 0 }), (code) => `\\U${code.toString(16).padStart(8, '0')}`);
}
