import { execStartWords } from '../../host/systemd/exec-start.ts';
import { isProgramName } from './agent-program.ts';
import { AGENT_UNIT, KEEPS_DROP_IN_DIRECTORY } from './agent-units.ts';

/** How an agent was installed. Null: its unit does not say. */
export interface InstalledAgent {
  /** Where its program is. */
  readonly programDirectory: string | null;
  /** Of the ConfigMaps it reads. */
  readonly namespace: string | null;
  readonly nodeName: string | null;
  /** The directory of the kubelet's drop-ins existed before. */
  readonly keepsDropInDirectory: boolean;
}

/** Reads in the text of its unit how an agent was installed. @param unitText null: there is no unit */
export function readInstalledAgent(unitText: string | null): InstalledAgent {
  const words = execStartWords([{ path: AGENT_UNIT, text: unitText }], [])?.map(({ word }) => word) ?? [];
  const wordAfter = (flag: string): string | null => (words.includes(flag) ? (words[words.lastIndexOf(flag) + 1] ?? null) : null);
  const program = words.find((word) => isProgramName(word.slice(word.lastIndexOf('/') + 1)));
  return {
    programDirectory: program?.startsWith('/') === true ? program.slice(0, program.lastIndexOf('/')) : null,
    namespace: wordAfter('--namespace'),
    nodeName: wordAfter('--node-name'),
    // Without a unit nothing says that enable made the directory.
    keepsDropInDirectory: unitText === null || unitText.split('\n').includes(KEEPS_DROP_IN_DIRECTORY),
  };
}
