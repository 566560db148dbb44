import { remoteProgramContract } from '../contract/remote-program.ts';
import { SHELLS } from '../support/shells.ts';

// dash: test/integration/remote-program.test.ts.
SHELLS.filter(({ name }) => name !== 'dash').forEach(remoteProgramContract);
