from services.studio.command import main

raise SystemExit(main())
