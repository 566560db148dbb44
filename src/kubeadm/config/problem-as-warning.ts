import { formatPosition, type Problem } from '../../base/errors.ts';
import type { Warning } from '../../host/plan/change.ts';

/** A problem of a configuration file as a warning of a command, with its position in the text. */
export function problemAsWarning({ code, message, hint, path, position }: Problem): Warning {
  const place = position === undefined ? '' : `${formatPosition(position)}: `;
  return {
    code,
    message: `${place}${path === undefined ? '' : `${path}: `}${message}${hint === undefined ? '' : `. ${hint}`}`,
    field: path,
  };
}
