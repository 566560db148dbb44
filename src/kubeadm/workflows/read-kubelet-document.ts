import { AppError } from '../../base/errors.ts';
import { identityOf, Memo } from '../../base/memo.ts';
import type { SourceDocument } from '../../codec/source.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../../kubelet/decode.ts';
import type { ParsedConfig } from '../render/cluster-config.ts';

/** Decodes a KubeletConfiguration document. Throws all its problems at once, with exit code 2. */
export function readWritten(document: SourceDocument, minor: Minor, catalogue: Catalogue): ParsedConfig {
  return WRITTEN.get(document, `${minor} ${identityOf(catalogue)}`, () => decode(document, minor, catalogue));
}

/** Hosts of a group share its document. */
const WRITTEN = new Memo<SourceDocument, ParsedConfig>();

function decode(document: SourceDocument, minor: Minor, catalogue: Catalogue): ParsedConfig {
  const { value, fields, problems } = decodeKubeletConfiguration(document, { minor, catalogue });
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return { value, fields, source: document.file };
}
