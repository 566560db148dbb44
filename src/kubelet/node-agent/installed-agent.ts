import { execStartWords } from '../../host/systemd/exec-start.ts';
import { isProgramName } from './agent-program.ts';
import { AGENT_UNIT, KEEP_DROP_IN_DIRECTORY_MARKER } from './agent-units.ts';

/** How an agent was installed. Null: not found in its unit. */
export interface InstalledAgent {
  /** Directory of its program. */
  readonly programDirectory: string | null;
  /** Namespace of the ConfigMaps it reads. */
  readonly namespace: string | null;
  readonly nodeName: string | null;
  /** The file of signers whose ConfigMaps it accepts. */
  readonly signersFile: string | null;
  /** The directory of the kubelet's drop-ins existed before. */
  readonly keepsDropInDirectory: boolean;
}

/** Reads from the unit text how an agent was installed. @param unitText null: no unit exists */
export function readInstalledAgent(unitText: string | null): InstalledAgent {
  const words = execStartWords([{ path: AGENT_UNIT, text: unitText }], [])?.map(({ word }) => word) ?? [];
  const wordAfter = (flag: string): string | null => (words.includes(flag) ? (words[words.lastIndexOf(flag) + 1] ?? null) : null);
  const program = words.find((word) => isProgramName(word.slice(word.lastIndexOf('/') + 1)));
  return {
    programDirectory: program?.startsWith('/') === true ? program.slice(0, program.lastIndexOf('/')) : null,
    namespace: wordAfter('--namespace'),
    nodeName: wordAfter('--node-name'),
    signersFile: wordAfter('--require-signature'),
    // Without a unit, assume that the directory existed before.
    keepsDropInDirectory: unitText === null || unitText.split('\n').includes(KEEP_DROP_IN_DIRECTORY_MARKER),
  };
}
